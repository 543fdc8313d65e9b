from pydantic import BaseModel

from pegboard import Pegboard

FIELDS = {
    "number": "Number of the order, such as 2041",
    "items.name": "Name of the product",
    "total": "In cents, tax included",
}

shop = Pegboard("shop")


class Item(BaseModel):
    name: str
    price: int


class Order(BaseModel):
    number: int
    items: list[Item]
    total: int


@shop.tool(field_descriptions=FIELDS)
def get_order(number: int) -> Order:
    """Show one order."""
    return Order(number=number, items=[Item(name="Lamp", price=4900)], total=4900)


def main() -> None:
    tool = shop.describe("get_order")[0]
    assert tool.returns == "{number, items[]{name, price}, total}"
    assert "tax included" not in str(tool.wire())


if __name__ == "__main__":
    main()
